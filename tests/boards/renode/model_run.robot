*** Settings ***
Suite Setup       Setup
Suite Teardown    Teardown
Test Setup        Reset Emulation
Test Teardown     Test Teardown
Resource          ${RENODEKEYWORDS}
Resource          board.resource

*** Test Cases ***
A Model Has The Outputs And Instruction Counts Of The Other Emulator
    Load Board    ${CASES}/board.repl    ${FIRMWARE}    ${CASES}/model.job
    Every Memory Should Be There
    Start Emulation
    Run Should End Well
    ${names}=    Read Lines    ${CASES}/model.files
    FOR    ${name}    IN    @{names}
        ${expected}=    Get Binary File    ${CASES}/model/${name}
        ${written}=    Get Binary File    ${FILES}/${name}
        Should Be Equal    ${written}    ${expected}
    END
    ${report}=    Read Lines    ${FILES}/report
    ${counts}=    Read Lines    ${CASES}/model.counts
    FOR    ${count}    IN    @{counts}
        Should Contain    ${report}    ${count}
    END
